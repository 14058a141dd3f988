"""Post-boot tasks, files there and back, and folders."""

from pathlib import Path

from fabrictestbed_extensions.fablib.fablib import FablibManager as fablib_manager

fablib = fablib_manager()
fablib.verify_and_configure()
fablib.save_config()

folder = Path("to_upload")
(folder / "deep").mkdir(parents=True)
(folder / "deep" / "note.txt").write_text("from the notebook\n")
Path("config_script.sh").write_text('#!/bin/bash\necho "configured $1 on $(hostname)" > configured.txt\n')

slice = fablib.new_slice(name="PostBoot")
node = slice.add_node(name="Node1", site="MAX", image="default_rocky_8")
node.add_post_boot_upload_file("config_script.sh", "config_script.sh")
node.add_post_boot_upload_directory("to_upload", ".")
node.add_post_boot_execute("chmod +x config_script.sh && ./config_script.sh {{ _self_.name }}")
slice.submit()

slice = fablib.get_slice("PostBoot")
node = slice.get_node("Node1")
assert node.execute("cat configured.txt", quiet=True)[0] == "configured Node1 on Node1\n"
assert node.execute("cat to_upload/deep/note.txt", quiet=True)[0] == "from the notebook\n"
node.download_file("configured_here.txt", "configured.txt")
assert Path("configured_here.txt").read_text() == "configured Node1 on Node1\n"
node.upload_file("configured_here.txt", "/tmp/again.txt")
assert node.execute("sudo install -o root -m 600 /tmp/again.txt /etc/again; sudo cat /etc/again", quiet=True)[
    0
]
node.download_directory("back", "to_upload")
assert next(Path("back").rglob("note.txt")).read_text() == "from the notebook\n"
slice.delete()
