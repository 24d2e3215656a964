"""Tools of other libraries and providers: one module for each outside shape that is read or written."""
