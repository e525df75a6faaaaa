import inspect

import pytest

from memd.capture.intake import Intake
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.curator import Curator
from memd.distill.distiller import Distiller
from memd.index.indexer import Indexer
from memd.index.upkeep import Upkeep
from memd.recall.recaller import Recaller
from memd.serve import app

ROOMS = [
    (app.Captures, Intake),
    (app.Searches, Recaller),
    (app.Curates, Curator),
    (app.Indexes, Indexer),
    (app.Keeps, Upkeep),
    (app.Distils, Distiller),
    (app.Consolidates, Consolidator),
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
