"""One module per dataset format; each registers its reader under the name people load it by."""
