"""What kinds of experiments share in which strategies written as code play."""
