"""`/redra/v1/incidents`: the known defects and traps that come with the program."""

from app.api.redra import experiment_models as models
from app.api.redra.server_parts import Gallery
from app.domain.errors import InputError, NotFound


class GalleryApi:
    """Answers questions about the incidents of the gallery, which are the same for all users."""

    def __init__(self, gallery: Gallery | None) -> None:
        self._gallery = gallery

    @property
    def gallery(self) -> Gallery:
        """The gallery. Raises NotFound if this server has none."""
        if self._gallery is None:
            raise NotFound("this server has no gallery of incidents")
        return self._gallery

    def list(self) -> models.IncidentList:
        """All incidents in short."""
        exhibits = [self.gallery.read(name) for name in self.gallery.names()]
        return models.IncidentList(
            items=[models.IncidentSummary(**each.about()) for each in exhibits]
        )

    def show(self, name: str) -> models.IncidentStory:
        """The story of an incident, and what is observed with and without it. Raises NotFound."""
        try:
            exhibit = self.gallery.read(name)
        except InputError as problem:
            raise NotFound(str(problem), resource="incidents", name=name) from problem
        finding, instead = exhibit.facts()
        return models.IncidentStory(
            **exhibit.about(), story=exhibit.story, finding=finding, instead=instead
        )
