import { startLoopbackServer } from './loopback.ts';

export interface CountingSink {
  readonly port: number;
  readonly acceptCounts: ReadonlyMap<string, number>;
  readonly acceptOrder: readonly string[];
  startAnswering(): void;
}

const REPLIES_BY_VERB: Readonly<Record<string, string>> = {
  EHLO: '250-sink\r\n250-PIPELINING\r\n250 SMTPUTF8\r\n',
  DATA: '354 go\r\n',
  QUIT: '221 bye\r\n',
};

/** `silence`: no reply, and the connection stays open. */
export type SinkReply = string | 'drop' | 'silence' | null;

/** `respond` replaces the reply to a connection (an empty verb), a command, or the content (`.`). Null: as usual. */
export async function startCountingSink({
  answerContent = true,
  respond = (): SinkReply => null,
}: {
  readonly answerContent?: boolean;
  readonly respond?: (verb: string) => SinkReply;
} = {}): Promise<CountingSink> {
  const acceptCounts = new Map<string, number>();
  const acceptOrder: string[] = [];
  let isAnswering = answerContent;

  const countMessage = (content: string) => {
    const id = /^Message-ID: <([^@>]+)@/im.exec(content)?.[1] ?? 'no id';
    if (!acceptCounts.has(id)) acceptOrder.push(id);
    acceptCounts.set(id, (acceptCounts.get(id) ?? 0) + 1);
  };

  const { port } = await startLoopbackServer((socket) => {
    socket.setNoDelay();
    let bufferedText = '';
    let inContent = false;
    /** False if the connection ended. */
    const answer = (verb: string, usual: string): boolean => {
      const reply = respond(verb);
      if (reply === 'drop') socket.destroy();
      else if (reply !== 'silence') socket.write(reply === null ? usual : `${reply}\r\n`);
      return reply !== 'drop';
    };
    if (!answer('', '220 sink\r\n')) return;
    socket.on('data', (chunk) => {
      bufferedText += chunk.toString('latin1');
      for (;;) {
        const end = bufferedText.indexOf(inContent ? '\r\n.\r\n' : '\r\n');
        if (end < 0) return;
        const part = bufferedText.slice(0, end);
        bufferedText = bufferedText.slice(end + (inContent ? 5 : 2));
        if (inContent) {
          inContent = false;
          const reply = respond('.');
          if (reply === null || reply === 'drop' || reply === 'silence') countMessage(part);
          if (!isAnswering) continue;
          if (reply === 'drop') socket.destroy();
          else if (reply !== 'silence') socket.write(`${reply ?? '250 2.0.0 ok'}\r\n`);
          continue;
        }
        const verb = part.slice(0, 4).toUpperCase();
        inContent = verb === 'DATA';
        if (!answer(verb, REPLIES_BY_VERB[verb] ?? '250 2.1.0 ok\r\n')) return;
      }
    });
  });
  return {
    port,
    acceptCounts,
    acceptOrder,
    startAnswering: () => {
      isAnswering = true;
    },
  };
}
