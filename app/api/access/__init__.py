"""Authorization: the rights of users, and the parts of answers that readers may see."""
