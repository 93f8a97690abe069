"""Where and how a training computes: devices, and several processes that train one model together."""
