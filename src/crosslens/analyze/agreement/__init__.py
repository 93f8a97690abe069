"""Does a relevance function agree with people's judgements?"""
