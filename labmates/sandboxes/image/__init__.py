"""The image of Docker sandboxes: name, ingredients and build."""
