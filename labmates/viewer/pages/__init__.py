"""The pages: each is made from what is read and from addresses alone, so that a server and an export share them."""
