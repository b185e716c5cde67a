"""Submits one message: python3 send.py TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY"""
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

API_URL = os.environ.get("MAIL_API_URL", "http://127.0.0.1:8080") + "/api/v1/send-mail"
MAX_ATTEMPTS = 5


def send_mail(fields, idempotency_key):
    """Returns the id of the accepted message. Raises an error if the request is refused or no response arrives."""
    request = urllib.request.Request(
        API_URL,
        data=json.dumps(fields).encode(),
        headers={
            "Authorization": os.environ["POSTRIDER_API_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        },
    )
    for attempt in range(1, MAX_ATTEMPTS + 1):
        delay = 2 ** (attempt - 1) * random.uniform(0.5, 1)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)["result"]["id"]
        except urllib.error.HTTPError as error:
            reason = error.headers.get("Postrider-Reason")
            failure = RuntimeError(f"{error.code} {error.read().decode()}" + (f" ({reason})" if reason else ""))
            if error.code not in (408, 429) and error.code < 500:
                raise failure from None
            delay = float(error.headers.get("Retry-After", delay))
        except (OSError, http.client.HTTPException) as error:
            # No response: the message may have been accepted. The key makes the repetition safe.
            failure = error
        if attempt < MAX_ATTEMPTS:
            time.sleep(delay)
    raise failure


if __name__ == "__main__":
    to, sender, subject, message, key = sys.argv[1:]
    try:
        print(send_mail({"to": to, "from": sender, "subject": subject, "message": message}, key))
    except (RuntimeError, OSError, http.client.HTTPException) as failure:
        sys.exit(str(failure))
