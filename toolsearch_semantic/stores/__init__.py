"""Where it is remembered which tools a thread has loaded."""
