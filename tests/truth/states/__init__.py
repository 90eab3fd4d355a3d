"""Whether `why` says in what state pods and claims in use are, by whom, and until when."""
