"""What an evaluation will cost: measured rates, and plans made from them."""
