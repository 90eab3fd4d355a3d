"""Rules of single kinds that writes of these kinds apply."""
