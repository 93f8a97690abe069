"""Writers of descriptions: rules, or a language model behind an address. The registry imports every module here."""
