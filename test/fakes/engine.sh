#!/bin/sh
# A container engine that writes down what it is asked for, and does nothing else. It is installed under the names of
# real programs. Variables tell it what to do:
#
#   FAKE_RECORDS   folder that gets one numbered file for each call: the program's name and its arguments, each
#                  ended by NUL. Questions about the version leave none.
#   FAKE_VERSION   the version that it claims to be, such as 4.9.3
#   FAKE_ASKED     what happens when it is asked for its version: answer (the default), fail, hang
#   FAKE_RUN       what `run` does: exit (the default) with FAKE_CODE, or hang
#   FAKE_CODE      exit code of `run`, default 1
#   FAKE_LINES     lines of log before that, on standard error
#   FAKE_MESSAGE   the last words of `run`, on standard error
#   FAKE_SAVED     what `save` writes into its file; as podman, it refuses one that is there
#   FAKE_OUTPUT    what `run`, `load` and `ps` print on standard output
#   FAKE_OUTPUT_N, FAKE_CODE_N   the same for the call that is recorded as number N alone
#   FAKE_RESULT    a file that `run` copies to where convert's programs are told to put their result
#   FAKE_INFO      what `info` prints, in place of a few lines of text; `hang` hangs, `fail: words` fails with them
#   FAKE_IMAGE     what `image inspect` prints; empty: there is no such image
name=${0##*/}

answer() {
    case ${FAKE_ASKED:-answer} in
        fail) echo "$name: cannot find its own libraries" >&2; exit 125 ;;
        hang) exec sleep 1000 ;;
    esac
    printf '%s\n' "$@"
    exit 0
}

case $FAKE_VERSION in
    20.10.24) build=297e128 ;;
    *) build=e6534b4 ;;
esac
case ${1-}:${FAKE_INFO-} in
    info:hang) exec sleep 1000 ;;
    info:fail:*) echo "${FAKE_INFO#fail: }" >&2; exit 125 ;;
    info:?*) case ${3-} in *CDISpecDirs*) ;; *) printf '%s\n' "$FAKE_INFO"; exit 0 ;; esac ;;
esac
case "$name ${1-}" in
    'podman --version' | 'podman -v') answer "podman version $FAKE_VERSION" ;;
    'docker --version' | 'docker -v') answer "Docker version $FAKE_VERSION, build $build" ;;
    'podman version') answer 'Client:       Podman Engine' "Version:      $FAKE_VERSION" "API Version:  $FAKE_VERSION" ;;
    'docker version') answer 'Client: Docker Engine - Community' " Version:           $FAKE_VERSION" ;;
    'docker info')
        case "$FAKE_VERSION ${3-}" in
            2[0-4].*'{{json .CDISpecDirs}}')
                echo 'template: :1:7: executing "" at <.CDISpecDirs>: can'\''t evaluate field CDISpecDirs' >&2
                exit 64 ;;
            *'{{json .CDISpecDirs}}') answer '["/etc/cdi","/var/run/cdi"]' ;;
            *) answer 'Client: Docker Engine - Community' " Version:    $FAKE_VERSION" ;;
        esac ;;
    'podman info') answer 'host:' '  arch: amd64' 'version:' "  Version: $FAKE_VERSION" ;;
esac

set -C # a number that is taken is never overwritten
number=1
until { printf '%s\0' "$name" "$@" >"$FAKE_RECORDS/$number"; } 2>/dev/null; do
    number=$((number + 1))
done

eval "FAKE_OUTPUT=\${FAKE_OUTPUT_$number-\${FAKE_OUTPUT-}} FAKE_CODE=\${FAKE_CODE_$number-\${FAKE_CODE-}}"
case ${1-} in
    run)
        line=0
        while [ "$line" -lt "${FAKE_LINES:-0}" ]; do
            line=$((line + 1))
            echo "line $line of the log" >&2
        done
        for word in ${FAKE_RESULT:+"$@"}; do
            case $word in
                --mount=*,destination=/output*) work=${word#*src=} work=${work%%,destination=*} ;;
                *:/output | *:/output:*) work=${word%:/output*} ;;
                /output/*) made=${word#/output/} ;;
            esac
        done
        [ -z "${FAKE_RESULT-}" ] || /bin/cp "$FAKE_RESULT" "$work/$made"
        [ -z "${FAKE_OUTPUT-}" ] || printf '%s\n' "$FAKE_OUTPUT"
        [ "${FAKE_RUN:-exit}" = hang ] && exec sleep 1000
        [ -z "${FAKE_MESSAGE-}" ] || printf '%s\n' "$FAKE_MESSAGE" >&2
        exit "${FAKE_CODE:-1}" ;;
    image)
        [ -n "${FAKE_IMAGE-}" ] || { echo "Error: ${3-}: image not known" >&2; exit 125; }
        printf '%s\n' "$FAKE_IMAGE" ;;
    inspect) echo "Error: no such container ${6-}" >&2; exit 125 ;;
    save) [ -z "${FAKE_SAVED-}" ] || printf '%s' "$FAKE_SAVED" >"$3" || exit 125 ;;
    load) [ -z "${FAKE_OUTPUT-}" ] || printf '%s\n' "$FAKE_OUTPUT" ;;
    ps) [ -z "${FAKE_OUTPUT-}" ] || printf '%s\n' "$FAKE_OUTPUT" ;;
esac
exit 0
