"""The IMP benchmark: diverse images, each with several different captions that people checked."""
