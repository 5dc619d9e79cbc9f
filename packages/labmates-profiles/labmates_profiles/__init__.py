"""What cooperative profiles say: experiments of the cooperative-profiles paper, and screening of models."""
