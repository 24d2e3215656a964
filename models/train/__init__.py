"""How the models in this folder are made: data, pairs, hard negatives, training, export, scores."""
