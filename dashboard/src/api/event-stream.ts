/**
 * Reads server-sent events (WHATWG HTML section 9.2) with fetch, because an EventSource cannot send the session header.
 * Reads only the format that this service writes: lines end with a line feed, and an event has one line of data.
 */
import { buildApiUrl } from './client';
import { getSessionHeader } from './session-secret';

/** The service sends a heartbeat every 15 s. */
const MAX_SILENCE_MS = 45_000;

export interface StreamListener {
  readonly onOpen: () => void;
  readonly onEvent: (name: string, data: string) => void;
}

/**
 * Reads events until the stream ends, `signal` aborts it, or the service sends nothing for 45 s. Resolves to `refused`
 * if the service answers without a stream. Otherwise resolves to `ended`, even if the service does not answer. Never
 * rejects.
 */
export async function readEvents(
  apiPath: string,
  signal: AbortSignal,
  { onOpen, onEvent }: StreamListener,
): Promise<'refused' | 'ended'> {
  // A service that stops without closing its connections, or a lost network, causes no error. The timer therefore
  // aborts the request.
  const silenceController = new AbortController();
  let timer = setTimeout(() => silenceController.abort(), MAX_SILENCE_MS);
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silenceController.abort(), MAX_SILENCE_MS);
  };
  try {
    const headers = { Accept: 'text/event-stream', ...getSessionHeader() };
    const { ok, body } = await fetch(buildApiUrl(apiPath), {
      headers,
      signal: AbortSignal.any([signal, silenceController.signal]),
      cache: 'no-store',
    });
    if (!ok || body === null) return 'refused';
    onOpen();
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 'ended';
      restartTimer();
      text += value;
      const end = text.lastIndexOf('\n\n');
      if (end === -1) continue;
      for (const block of text.slice(0, end).split('\n\n')) parseBlock(block, onEvent);
      text = text.slice(end + 2);
    }
  } catch {
    return 'ended';
  } finally {
    clearTimeout(timer);
  }
}

function parseBlock(block: string, onEvent: StreamListener['onEvent']): void {
  const field = (name: string) =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field('data');
  if (data !== undefined) onEvent(field('event') ?? 'message', data);
}
