"""What a model cannot do, probed by minimal pairs of the user's own captions."""

from crosslens.analyze.probes.probe import Probes as Probes, probe_captions as probe_captions
