"""Does a model prefer the right caption to captions that are nearly right?"""
