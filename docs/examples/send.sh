#!/bin/sh
# Submits one message: sh send.sh FILE IDEMPOTENCY_KEY
# FILE contains the JSON object with to, from, subject and message. Prints the response.
# Exit code 0: accepted. Exit code 1: refused, or no response after 5 attempts.
set -eu

response=$(mktemp)
trap 'rm -f "$response"' EXIT

# The headers are read from standard input, because other users of the machine can read a command line.
# curl repeats the request after 408, 429, 5xx and network errors, and obeys Retry-After.
status=$(curl --silent --show-error --max-time 10 --retry 4 --retry-all-errors \
  --output "$response" --write-out '%{http_code}' --header @- --data-binary "@$1" \
  "${MAIL_API_URL:-http://127.0.0.1:8080}/api/v1/send-mail" <<HEADERS
Authorization: $POSTRIDER_API_KEY
Content-Type: application/json
Idempotency-Key: $2
HEADERS
) || { echo 'no response' >&2; exit 1; }

if [ "$status" = 201 ]; then
  cat "$response"
else
  echo "$status $(cat "$response")" >&2
  exit 1
fi
