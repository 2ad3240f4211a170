"""Two hundred images per run; `make prove` makes thousands."""

from pathlib import Path

from tests.crash_images.images import problems, take_images

IMAGES = 200


def test_what_a_crash_leaves_of_a_file_is_sound_and_legal(tmp_path: Path) -> None:
    images = take_images(tmp_path, seed=1)[:IMAGES]
    assert len(images) == IMAGES
    kinds = {image.what.split(" frame")[0] for image in images}
    assert kinds == {"whole", "cut before", "cut inside", "half a checkpoint"}
    assert [sentence for image in images for sentence in problems(image, tmp_path)] == []
