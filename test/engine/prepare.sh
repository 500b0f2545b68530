#!/bin/bash
# Prepares a bare Debian 12 or 13 machine for the tests that need real engines: podman, docker and an
# image with a real llama-server. Run as root; README.md beside this file tells what it does.
#
#   prepare.sh            install, build, start; the last line of stdout is the path of the env file to source
#   prepare.sh --tools    the same, and build the image with the converter too, which takes some minutes
#   prepare.sh --fresh    build the images anew
#   prepare.sh --stop     stop the docker daemon and the containers that this script or the tests started
set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# Open files that a caller left behind go: mmdebstrap fails where its own get numbers above 9.
for fd in /proc/self/fd/*; do
    if ((${fd##*/} > 2 && ${fd##*/} < 255)); then eval "exec ${fd##*/}>&-"; fi
done
exec 3>&1 1>&2 </dev/null # stdout is for the env file's path alone

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
[[ -n ${HOME:-} ]] || HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export HOME
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ramalama-like-test # survives: archives, image stores
run=/run/ramalama-like-test                                # short paths: sockets, pid files
env_file=$cache/env
docker_socket=unix://$run/docker.sock
rootless_user=ramalama-test
base_image=docker.io/library/debian:forky-slim
test_image=quay.io/ramalama/ramalama:0.25
dev_image=localhost/ramalama-like/cpu:dev
vulkan_image=localhost/ramalama-like/vulkan:dev
tools_image=localhost/ramalama-like/tools:dev
driverless_image=localhost/ramalama-like/vulkan-without-driver:dev
key_label=io.ramalama-like.test.key
unset CONTAINER_HOST CONTAINERS_STORAGE_CONF
export CONTAINERS_CONF=$cache/containers.conf PODMAN_IGNORE_CGROUPSV1_WARNING=1

# --- talking ------------------------------------------------------------------------------------

step_name='' step_since=0 began=$(date +%s%N)
elapsed_since() { printf '%d.%d s' $((($(date +%s%N) - $1) / 1000000000)) $((($(date +%s%N) - $1) / 100000000 % 10)); }
step() {
    [[ -z $step_name ]] || echo "prepare: $step_name: $(elapsed_since "$step_since")"
    step_name=$1 step_since=$(date +%s%N)
}
die() { # message, hint…
    echo "prepare: FAILED at step '${step_name:-start}': $1"
    shift
    for hint in "$@"; do echo "prepare: $hint"; done
    trap - ERR
    exit 1
}
trap 'die "line $LINENO ended with exit code $?: $BASH_COMMAND" "the reason is above"' ERR
set -o errtrace
quietly() { # runs a command; shows its output only when it fails
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 3>&- 9>&- || status=$?
    if ((status)); then
        tail -n 40 "$log"
        echo "prepare: exit code $status$( ((status != 124)) || echo ' (out of time)'): $*"
    fi
    rm -f "$log"
    return "$status"
}

# --- apt ----------------------------------------------------------------------------------------

# shellcheck disable=SC1091
debian_release() { (. /etc/os-release && echo "${VERSION_CODENAME:-unknown}"); }
apt_get() { timeout 900 apt-get --quiet --yes -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"; }
apt_has_lists() { compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; }
is_installed() { [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
exists_in_apt() { [[ -n $(apt-cache show --no-all-versions "$1" 2>/dev/null) ]]; }

install_packages() {
    local -a want=(ca-certificates curl git make python3-venv tmux
        podman runc uidmap slirp4netns fuse-overlayfs catatonit iptables
        docker.io tini skopeo docker-registry mmdebstrap)
    local -a missing=()
    local package policy=/usr/sbin/policy-rc.d
    if [[ $(debian_release) != bookworm ]]; then want+=(docker-cli passt netavark aardvark-dns nftables); fi
    for package in "${want[@]}"; do is_installed "$package" || missing+=("$package"); done
    ((${#missing[@]})) || return 0
    echo "prepare: installing ${missing[*]}"
    apt_has_lists || quietly apt_get update
    # no service is to start by itself: the docker daemon is started below, with its own folders
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        # shellcheck disable=SC2064
        trap "rm -f $policy" EXIT
    fi
    if ! quietly apt_get install --no-install-recommends --no-upgrade "${missing[@]}"; then
        echo 'prepare: the installation failed; once more with fresh package lists'
        quietly apt_get update
        quietly apt_get install --no-install-recommends --no-upgrade "${missing[@]}" ||
            die 'apt-get could not install the packages' "try: apt-get update && apt-get install ${missing[*]}"
    fi
}

# The Debian mirror that the machine's own apt configuration uses, in whatever format that is written.
apt_mirror() {
    local format="\$(CODENAME) \$(COMPONENT) \$(REPO_URI)"
    apt_has_lists || quietly apt_get update
    apt-get indextargets --format "$format" 'Created-By: Packages' |
        awk -v release="$(debian_release)" '$1 == release && $2 == "main" { print $3; exit }'
}
# What the machine had to tell its apt about the way to the mirror (proxy, clock), for the other suites.
apt_settings() { apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date|Retries)\b.* "[^"]' || true; }
apt_keyring() {
    local file
    for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
        if [[ -e $file ]]; then echo "$file" && return; fi
    done
    die 'no keyring of the Debian archive' 'try: apt-get install debian-archive-keyring'
}

# --- quadlet ------------------------------------------------------------------------------------

# The generator of another Debian suite's podman, unpacked and not installed.
fetch_quadlet() { # suite
    local suite=$1 folder=$cache/quadlet/$1 work
    [[ -x $folder/quadlet ]] && return
    work=$(mktemp -d)
    mkdir -p "$work"/{lists/partial,cache/archives/partial,deb} "$folder"
    echo "deb [signed-by=$(apt_keyring)] $mirror $suite main" >"$work/sources.list"
    local -a options=(-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=-
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
    quietly apt_get "${options[@]}" update
    (cd "$work/deb" && quietly apt_get "${options[@]}" download podman)
    dpkg -x "$work"/deb/podman_*.deb "$work/root"
    install -m 755 "$work/root/usr/libexec/podman/quadlet" "$folder/quadlet.new"
    mv "$folder/quadlet.new" "$folder/quadlet"
    rm -rf "$work"
    "$folder/quadlet" -version >/dev/null || die "the quadlet generator of $suite does not run here"
}

# --- podman -------------------------------------------------------------------------------------

# The tests get an image store of their own: the user's images are neither seen nor shadowed. runc,
# because crun refuses hybrid cgroups; limits that a machine without CAP_SYS_RESOURCE can set.
write_containers_conf() { # file, folder of the state
    local cgroups=cgroupfs
    [[ -d /run/systemd/system && $2 != *user* ]] && cgroups=systemd
    cat >"$1.new" <<END
[engine]
runtime = "runc"
cgroup_manager = "$cgroups"
events_logger = "file"
tmp_dir = "$2/libpod"
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1000:1000"]
log_driver = "k8s-file"
END
    chmod 644 "$1.new"
    mv "$1.new" "$1"
}
write_storage_conf() { # file, folder of the images, folder of the state
    printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$2" "$3" >"$1.new"
    chmod 644 "$1.new"
    mv "$1.new" "$1"
}
root_podman() { CONTAINERS_STORAGE_CONF=$cache/storage.conf timeout 900 podman "$@"; }
as_user() { # a command, as the unprivileged user
    local home=/home/$rootless_user
    (cd / && timeout 900 runuser -u "$rootless_user" -- env -i HOME="$home" USER="$rootless_user" LOGNAME="$rootless_user" \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin LC_ALL=C.UTF-8 XDG_RUNTIME_DIR="$rootless_run" \
        CONTAINERS_CONF="$rootless_conf" CONTAINERS_STORAGE_CONF="$rootless_storage" \
        PODMAN_IGNORE_CGROUPSV1_WARNING=1 "$@")
}

# --- images -------------------------------------------------------------------------------------

# The stand-in for the public image of the same name, made from the same packages.
make_base() { # archive
    local -a options=(--variant=apt --format=tar --mode=root --keyring="$(apt_keyring)"
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright')
    local setting
    while read -r setting; do options+=(--aptopt="${setting%;}"); done < <(apt_settings)
    [[ $mirror != https:* ]] || options+=(--include=ca-certificates)
    quietly timeout 900 mmdebstrap "${options[@]}" forky "$1.new" "$mirror"
    mv "$1.new" "$1"
}
make_image() { # archive
    root_podman image exists "$base_image" ||
        quietly root_podman import --change 'CMD ["bash"]' "$base_archive" "$base_image"
    quietly root_podman build --pull=never --network host --format docker --label "$key_label=$image_key" \
        --tag "$test_image" "$root/containers/cpu"
    rm -f "$1.new"
    quietly root_podman save --format docker-archive --output "$1.new" "$test_image"
    mv "$1.new" "$1"
}
# The image with Mesa's software device, and the same without a driver, in one archive: most layers are shared.
make_vulkan() { # archive
    root_podman image exists "$base_image" ||
        quietly root_podman import --change 'CMD ["bash"]' "$base_archive" "$base_image"
    local -a build=(build --pull=never --network host --format docker --label "$key_label=$vulkan_key")
    quietly root_podman "${build[@]}" --target without-driver --tag "$driverless_image" "$root/containers/vulkan"
    quietly root_podman "${build[@]}" --tag "$vulkan_image" "$root/containers/vulkan"
    rm -f "$1.new"
    quietly root_podman save --format docker-archive --multi-image-archive --output "$1.new" "$vulkan_image" "$driverless_image"
    mv "$1.new" "$1"
}
# The converter needs PyTorch and Transformers, so this one is built only where somebody asks for it.
make_tools() { # archive
    root_podman image exists "$base_image" ||
        quietly root_podman import --change 'CMD ["bash"]' "$base_archive" "$base_image"
    quietly root_podman build --pull=never --network host --format docker --label "$key_label=$tools_key" \
        --tag "$tools_image" "$root/containers/tools"
    rm -f "$1.new"
    quietly root_podman save --format docker-archive --output "$1.new" "$tools_image"
    mv "$1.new" "$1"
}
base_key=$(declare -f make_base | sha256sum | cut -c1-16)
image_key=$({ echo "$base_key" && declare -f make_image && cat "$root/containers/cpu/Containerfile"; } | sha256sum | cut -c1-16)
base_archive=$cache/images/base-$base_key.tar
vulkan_key=$({ echo "$base_key" && declare -f make_vulkan && cat "$root/containers/vulkan/Containerfile"; } | sha256sum | cut -c1-16)
tools_key=$({ echo "$base_key" && declare -f make_tools && cat "$root/containers/tools/Containerfile"; } | sha256sum | cut -c1-16)
image_archive=$cache/images/cpu-$image_key.tar
tools_archive=$cache/images/tools-$tools_key.tar
vulkan_archive=$cache/images/vulkan-$vulkan_key.tar

has_image() { # image, its key, a command that speaks podman's or docker's language
    [[ $("${@:3}" image inspect --format "{{index .Config.Labels \"$key_label\"}}" "$1" 2>/dev/null) == "$2" ]]
}
load_into() { # a command that speaks podman's or docker's language
    has_image "$test_image" "$image_key" "$@" || quietly "$@" load <"$image_archive"
    quietly "$@" tag "$test_image" "$dev_image"
}
load_vulkan_into() { # the same
    if ! has_image "$vulkan_image" "$vulkan_key" "$@" || ! has_image "$driverless_image" "$vulkan_key" "$@"; then
        quietly "$@" load <"$vulkan_archive"
    fi
}
load_tools_into() { # the same
    has_image "$tools_image" "$tools_key" "$@" || quietly "$@" load <"$tools_archive"
}

# --- docker -------------------------------------------------------------------------------------

docker_answers() { [[ -n $(DOCKER_HOST=$1 timeout 20 docker version --format '{{.Server.Version}}' 2>/dev/null) ]]; }
# The daemon and the containerd that it starts both carry their folder in their command line: a pid file
# that outlived its process may name any other.
daemon_pid() { # pid file; prints the pid if that process lives and is ours
    local pid command
    pid=$(cat "$1" 2>/dev/null) && command=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") && [[ $command == *"$run/docker"* ]] && echo "$pid"
}
start_docker() {
    local deadline=$((SECONDS + 60)) log=$run/dockerd.log
    if daemon_pid "$run/docker.pid" >/dev/null && docker_answers "$docker_socket"; then docker_host=$docker_socket && return; fi
    docker_host=${DOCKER_HOST:-unix:///var/run/docker.sock}
    if docker_answers "$docker_host"; then
        echo "prepare: using the docker daemon that is already running at $docker_host"
        return
    fi
    docker_host=$docker_socket
    stop_docker
    mkdir -p "$cache/docker" "$run/docker"
    setsid dockerd --data-root "$cache/docker" --exec-root "$run/docker" --pidfile "$run/docker.pid" --host "$docker_socket" \
        --default-ulimit nofile=1024:4096 </dev/null >"$log" 2>&1 3>&- 9>&- &
    local pid=$!
    until docker_answers "$docker_socket"; do
        if ((SECONDS > deadline)) || [[ ! -d /proc/$pid && ! -e $run/docker.pid ]]; then
            tail -n 20 "$log"
            die 'dockerd did not start within 60 seconds' "its log is $log" 'it needs iptables, a free network for its bridge, and root'
        fi
        sleep 0.2
    done
}
stop_docker() {
    local pid file deadline
    for file in "$run/docker.pid" "$run/docker/containerd/containerd.pid"; do
        if pid=$(daemon_pid "$file"); then
            deadline=$((SECONDS + 20))
            kill -TERM "$pid"
            while [[ -d /proc/$pid ]] && ((SECONDS < deadline)); do sleep 0.1; done
            if [[ -d /proc/$pid ]]; then
                echo "prepare: process $pid of $file does not stop; killing it"
                kill -KILL "$pid" || true
                sleep 1
            fi
        fi
        rm -f "$file"
    done
    rm -f "$run/docker.sock"
}

# --- an unprivileged user -----------------------------------------------------------------------

find_rootless() { # where the unprivileged user's configuration is; false when there is no such user
    local uid
    uid=$(id -u "$rootless_user" 2>/dev/null) || return
    rootless_run=$run/user-$uid
    rootless_conf=$run/user-containers.conf
    rootless_storage=$run/user-storage.conf
}
prepare_rootless() {
    local file device
    # the modes that udev gives these devices where it runs: anyone may use them
    for device in /dev/fuse /dev/net/tun; do [[ ! -c $device ]] || chmod 666 "$device"; done
    touch /etc/subuid /etc/subgid
    id "$rootless_user" >/dev/null 2>&1 || quietly useradd --create-home --home-dir "/home/$rootless_user" --shell /bin/bash "$rootless_user"
    for file in uid gid; do
        grep -q "^$rootless_user:" "/etc/sub$file" || usermod "--add-sub${file}s" 300000-365535 "$rootless_user"
    done
    find_rootless
    install -d -m 700 -o "$rootless_user" -g "$rootless_user" "$rootless_run"
    write_containers_conf "$rootless_conf" "$rootless_run"
    write_storage_conf "$rootless_storage" "/home/$rootless_user/.local/share/containers/storage" "$rootless_run/containers"
    load_into as_user podman
    as_user podman run --rm --network none "$test_image" true
}

# --- the whole ----------------------------------------------------------------------------------

stop() {
    step 'stop'
    stop_docker
    if command -v podman >/dev/null && [[ -e $cache/storage.conf ]]; then
        quietly root_podman rm --all --force || true
    fi
    if find_rootless && [[ -e $rootless_conf ]]; then
        quietly as_user podman rm --all --force || true
        quietly as_user podman system migrate || true # ends the process that holds the user's namespace
    fi
    step ''
}

write_env() {
    local name
    {
        echo '# written by test/engine/prepare.sh: source it before the tests of the engines'
        for name in "$@"; do printf 'export %s=%q\n' "${name%%=*}" "${name#*=}"; done
    } >"$env_file.new"
    mv "$env_file.new" "$env_file"
}

[[ $(id -u) == 0 ]] || die 'this script installs packages and starts a docker daemon' 'run it as root'
command -v apt-get >/dev/null || die 'this script knows Debian only' 'elsewhere: install podman and docker, and see README.md'
mkdir -p "$cache/images" "$run"
chmod 755 "$run"
exec 9>"$cache/lock"
flock --wait 1200 9 || die 'another prepare.sh has been running for 20 minutes' "see: fuser $cache/lock"

with_tools=''
case ${1:-} in
    '') ;;
    --tools) with_tools=1 ;;
    --fresh) rm -f "$cache"/images/*.tar ;;
    --stop) stop && exit ;;
    *) die "unknown option $1" 'usage: prepare.sh [--tools | --fresh | --stop]' ;;
esac

step 'packages'
install_packages
mirror=$(apt_mirror)
[[ -n $mirror ]] || die "no Debian mirror for $(debian_release) found in the apt configuration" \
    'it takes one source with the component main: see apt-get indextargets'

step 'quadlet generators'
fetch_quadlet trixie
fetch_quadlet forky

step 'podman'
write_containers_conf "$cache/containers.conf" "$run"
write_storage_conf "$cache/storage.conf" "$cache/podman" "$run/podman"
quietly root_podman info || die 'podman does not work here' "its message is above; its configuration: $cache/containers.conf and storage.conf"

step 'base image'
[[ -e $base_archive ]] || make_base "$base_archive"
root_podman image exists "$base_image" || quietly root_podman import --change 'CMD ["bash"]' "$base_archive" "$base_image"

step 'image with llama-server'
[[ -e $image_archive ]] || make_image "$image_archive"
load_into root_podman

step 'image with Vulkan'
[[ -e $vulkan_archive ]] || make_vulkan "$vulkan_archive"
load_vulkan_into root_podman

if [[ -n $with_tools || -e $tools_archive ]]; then
    step 'image with the converter'
    [[ -e $tools_archive ]] || make_tools "$tools_archive"
    load_tools_into root_podman
fi

step 'docker daemon'
start_docker
export DOCKER_HOST=$docker_host
load_into timeout 300 docker
load_vulkan_into timeout 300 docker
if [[ -e $tools_archive ]]; then load_tools_into timeout 600 docker; fi

step 'rootless podman'
prepare_rootless

step 'env file'
tools=()
if [[ -e $tools_archive ]]; then tools=(ENGINE_TEST_TOOLS_IMAGE="$tools_image"); fi
write_env "${tools[@]}" CONTAINERS_CONF="$cache/containers.conf" CONTAINERS_STORAGE_CONF="$cache/storage.conf" \
    PODMAN_IGNORE_CGROUPSV1_WARNING=1 DOCKER_HOST="$docker_host" \
    ENGINE_TEST_ENGINES=podman,docker ENGINE_TEST_IMAGE="$test_image" \
    ENGINE_TEST_VULKAN_IMAGE="$vulkan_image" ENGINE_TEST_DRIVERLESS_IMAGE="$driverless_image" ENGINE_TEST_BASE_IMAGE="$base_image" \
    ENGINE_TEST_QUADLET="$cache/quadlet/trixie/quadlet" ENGINE_TEST_QUADLET_FORKY="$cache/quadlet/forky/quadlet" \
    ENGINE_TEST_ROOTLESS_USER="$rootless_user" ENGINE_TEST_ROOTLESS_HOME="/home/$rootless_user" \
    ENGINE_TEST_ROOTLESS_RUNTIME_DIR="$rootless_run" ENGINE_TEST_ROOTLESS_CONTAINERS_CONF="$rootless_conf" \
    ENGINE_TEST_ROOTLESS_STORAGE_CONF="$rootless_storage"
step ''
echo "prepare: ready in $(elapsed_since "$began"); source the file named below, stop with: $here/prepare.sh --stop"
echo "$env_file" >&3
