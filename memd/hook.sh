#!/bin/sh
# An agent's hook without Python: hands the payload to the daemon in a third of the time that an interpreter takes to start.
#
#   hook.sh PLACE SOCKET PYTHON HOOK.PY TIMEOUT EVENT SEND…
#
# `memd install` writes the arguments. PLACE is `in:` with MEMD_HOME and MEMD_VAULT as they were then; TIMEOUT ends a command after so
# many seconds; EVENT is the event's name, for other clients than Claude Code `CLIENT:EVENT`; SEND connects standard input and output to SOCKET, such as `nc -w 1 -U SOCKET`. What the daemon has not
# acknowledged as stored, for whatever reason, goes to the Python hook with the same payload, which redacts and spools it.
# So does everything that is not plain: other settings in the environment, a payload of several lines or megabytes, a
# directory that JSON would have to quote.
# memd/hook_event.py says what both promise; tests/test_hook.py holds both to it.

# A client that leaves ends the hooks beside it: they still say what they were told.
trap '' TERM
LC_ALL=C
place=$1 socket=$2 python=$3 hook=$4 timeout=$5 event=$6
shift 6
told=$event client=claude-code event_field=
case $event in
    *[!A-Za-z:-]*) ;;
    *:*) client=${event%%:*} event=${event#*:} event_field="\"event\":\"${event}\"," ;;
esac
[ -x "$timeout" ] || exec "$python" -I -S "$hook" "$told"
# Before a tool runs: without a rule in this session's file there is nothing to ask, and nothing is read.
method=memd/capture
if [ "$event" = PreToolUse ]; then
    method=memd/guard
    [ -n "${MEMD_DISABLE-}${MEMD_HOME-}${MEMD_VAULT-}" ] || [ -z "${CLAUDE_CODE_SESSION_ID-}" ] \
        || [ -f "$socket.watch/$CLAUDE_CODE_SESSION_ID" ] || exit 0
fi
case $event in
    # The agent goes on beside these: SEND ends by itself after a second, and a process less is started. `limit` always
    # runs in a shell of its own, whose place the command takes.
    PostToolUse | postToolUse) limit() { shift && exec "$@"; } ;;
    *) limit() { exec "$timeout" "$@"; } ;;
esac
# Of a huge payload the Python hook keeps as much; the rest is read, so that the client is not left with a broken pipe.
payload=$([ "$method" = memd/capture ] || exec head -c 16777217; limit 1.5 head -c 16777217)
[ "${#payload}" -le 16777216 ] || (limit 1 cat >/dev/null)

# Whether the call has all words of one row; `read` and `case` start no process.
is_watched() {
    session=${CLAUDE_CODE_SESSION_ID-}
    case $payload in '{"session_id":"'*) session=${payload#'{"session_id":"'} session=${session%%'"'*} ;; esac
    case $session in '' | *[!A-Za-z0-9_-]*) return 1 ;; esac
    [ -f "$socket.watch/$session" ] || return 1
    set -f
    while IFS= read -r row; do
        is_in=1
        for word in $row; do
            case $payload in *"$word"*) ;; *) is_in= ;; esac
        done
        [ -z "$is_in" ] || return 0
    done < "$socket.watch/$session"
    return 1
}

hand_over() {
    printf '%s\n' "$payload" | "$python" -I -S "$hook" "$told"
    exit 0
}

newline='
'
case $payload in
    *"$newline"*) hand_over ;;
    '{'*'}') ;;
    *) hand_over ;;
esac
[ -z "$event_field" ] || CLAUDE_PROJECT_DIR=
case ${CLAUDE_PROJECT_DIR-} in
    *'"'* | *'\'* | *[[:cntrl:]]*) hand_over ;;
esac
[ -z "${MEMD_DISABLE-}${MEMD_CAPTURE-}${MEMD_INJECT-}${MEMD_START-}" ] || hand_over
[ "in:${MEMD_HOME-}|${MEMD_VAULT-}" = "$place" ] || hand_over
[ "$method" = memd/capture ] || { is_watched && [ -S "$socket" ]; } || exit 0
[ "${#payload}" -lt 4000000 ] || hand_over
# Nobody but the owner of the socket can answer there: its directory is private.
[ -S "$socket" ] && [ -O "$socket" ] || hand_over

directory=null
[ -z "${CLAUDE_PROJECT_DIR-}" ] || directory="\"$CLAUDE_PROJECT_DIR\""
request='{"jsonrpc":"2.0","id":1,"method":"'$method'","params":{"client":"'$client'",'$event_field'"inject":true,"plain":true,"directory":'
case $event in
    # The daemon searches for context.
    SessionStart | UserPromptSubmit | PostToolUseFailure | SubagentStart) seconds=0.4 ;;
    sessionStart | userPromptSubmitted | postToolUseFailure) seconds=0.4 ;;
    *) seconds=0.25 ;;
esac
if [ -z "${BASH_VERSION-}${KSH_VERSION-}${ZSH_VERSION-}" ]; then
    # Dash and BusyBox, which set none of these, hold a here-document in a pipe: two processes less.
    reply=$(limit "$seconds" "$@" 2>/dev/null <<END
$request$directory,"payload":$payload}}
END
    )
else
    # Others may write one to a file, and a payload that nobody has redacted never lies in a file.
    reply=$(printf '%s%s,"payload":%s}}\n' "$request" "$directory" "$payload" | limit "$seconds" "$@" 2>/dev/null)
fi
case $reply in
    'memd ok .') ;;
    'memd ok {'*'} .')
        reply=${reply#memd ok }
        printf '%s\n' "${reply% .}"
        ;;
    *) [ "$method" = memd/guard ] || hand_over ;;
esac
exit 0
