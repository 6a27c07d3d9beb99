# What a container of the image would see, on this machine: run by "unshare --mount --pid --fork", as root.
#
#   image.sh ROOT SOURCE CONFIG VENV BASE OWNER NAME=VALUE... PROGRAM ARGUMENT...
#
# ROOT is an empty folder, SOURCE this project, CONFIG the folder of the configuration, VENV has what it is installed
# with, made from the Python in BASE; PROGRAM runs as the user OWNER, and nothing but its state and /tmp can be written.
set -eu
root=$1 source=$2 config=$3 venv=$4 base=$5 owner=$6
shift 6

mount -t tmpfs image "$root"
cd "$root"
mkdir -p usr proc dev tmp src etc/session-runtime run/secrets var/lib/session-runtime opt/session-runtime/bin
mkdir -p opt/session-runtime/lib
for each in bin sbin lib lib64; do
  if [ -L "/$each" ]; then
    cp -a "/$each" .
  elif [ -d "/$each" ]; then
    mkdir "$each"
    mount --bind "/$each" "$each"
  fi
done
mount --rbind /usr usr
mount --rbind /dev dev
mount -t proc proc proc
case $base in
  /usr | /usr/*) ;;
  *)
    mkdir -p ".$base"
    mount --bind "$base" ".$base"
    ;;
esac
mount --bind "$source" src
mount --bind "$config" etc/session-runtime

mount --bind "$venv/lib" opt/session-runtime/lib
cp "$venv/pyvenv.cfg" opt/session-runtime/
ln -s "$base/bin/python3" opt/session-runtime/bin/python
cat > opt/session-runtime/bin/session-runtime <<'END'
#!/opt/session-runtime/bin/python
import sys
from session_runtime.cli import main
sys.exit(main())
END
chmod 755 opt/session-runtime/bin/session-runtime
for each in replica_password bot_signing_secret; do
  printf 'a secret of more than 32 characters' > "run/secrets/$each"
done

mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o "mode=0700,uid=$owner,gid=$owner" state var/lib/session-runtime
mount -o remount,ro image "$root"
exec chroot --userspec="$owner:$owner" "$root" env -i "$@"
