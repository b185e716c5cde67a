import { once } from 'node:events';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';

const { default: start } = createRequire(import.meta.url)('aws-ses-v2-local') as typeof import('aws-ses-v2-local');

export interface LocalSes {
  readonly endpoint: string;
  fetchEmails(): Promise<
    readonly {
      readonly messageId: string;
      readonly subject: string;
      readonly destination: { readonly to: readonly string[] };
    }[]
  >;
  close(): Promise<void>;
}

export async function startLocalSes(): Promise<LocalSes> {
  const server: Server = await start({ port: 0, host: '127.0.0.1' });
  if (!server.listening) await once(server, 'listening');
  const address = server.address();
  const endpoint = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`;
  return {
    endpoint,
    fetchEmails: async () =>
      ((await (await fetch(`${endpoint}/store`)).json()) as { emails: Awaited<ReturnType<LocalSes['fetchEmails']>> })
        .emails,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
