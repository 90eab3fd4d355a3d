"""One module for each page: an answer and the frame around it in, HTML out."""
