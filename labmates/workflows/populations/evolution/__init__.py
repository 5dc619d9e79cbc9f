"""Cultural evolution of strategies written as code."""
