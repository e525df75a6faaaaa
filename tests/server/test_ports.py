import inspect

import pytest

from memd.capture.ingest import Ingestor
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.distill.distiller import Distiller
from memd.index.backfill import VectorMaintenance
from memd.index.indexer import Indexer
from memd.recall.recaller import Recaller
from memd.server import ports

ROOMS = [
    (ports.Captures, Ingestor),
    (ports.Searches, Recaller),
    (ports.Curates, Curator),
    (ports.Indexes, Indexer),
    (ports.Keeps, VectorMaintenance),
    (ports.Distils, Distiller),
    (ports.Consolidates, Consolidator),
]


@pytest.mark.parametrize(("port", "room"), ROOMS)
def test_a_room_offers_what_its_port_asks_for(port, room):
    for name, method in vars(port).items():
        if name.startswith("_"):
            continue
        offered = getattr(room, name)
        assert inspect.iscoroutinefunction(offered), name
        assert list(inspect.signature(offered).parameters) == list(
            inspect.signature(method).parameters
        )
