/**
 * Tracks prepared statements in a pooler in transaction mode, like PgBouncer 1.21 with `max_prepared_statements`.
 * Statements with the same text have the same name on the server, even if different clients prepare them. A server
 * connection that lacks the statement of a Bind message receives the Parse message of the statement first.
 */

/** The prepared statements and the expected answers of one server connection. */
export interface TrackedServer {
  readonly preparedNames: Set<string>;
  readonly expectedAnswers: (
    | { readonly kind: 'parse'; readonly name: string | null; readonly isDelivered: boolean }
    | { readonly kind: 'sync' }
  )[];
}

/** The Parse messages of one client, by statement name. The stored messages do not contain the name. */
export type ClientStatements = Map<string, Buffer>;

export interface StatementTracking {
  translateForServer(server: TrackedServer, client: ClientStatements, message: Buffer): readonly Buffer[];
  /** False for the answer to a Parse message that the pooler added. */
  isDelivered(server: TrackedServer, type: string): boolean;
}

export function createStatementTracking(): StatementTracking {
  const namesByText = new Map<string, string>();
  const getServerName = (statement: Buffer) => {
    const text = statement.toString('latin1');
    const name = namesByText.get(text) ?? `PGBOUNCER_${namesByText.size + 1}`;
    namesByText.set(text, name);
    return name;
  };
  const createParse = (server: TrackedServer, name: string, afterName: Buffer, isDelivered: boolean) => {
    server.preparedNames.add(name);
    server.expectedAnswers.push({ kind: 'parse', name, isDelivered });
    return encodeMessage('P', Buffer.from(`${name}\0`), afterName);
  };
  return {
    translateForServer(server, client, message) {
      const body = message.subarray(5);
      switch (message.toString('latin1', 0, 1)) {
        case 'P': {
          const [name, afterName] = splitName(body);
          if (name !== '') client.set(name, afterName);
          const serverName = name === '' ? null : getServerName(afterName);
          if (serverName !== null && !server.preparedNames.has(serverName))
            return [createParse(server, serverName, afterName, true)];
          server.expectedAnswers.push({ kind: 'parse', name: null, isDelivered: true });
          // If the statement is already prepared, the client receives the answer to an empty unnamed statement.
          return [serverName === null ? message : encodeMessage('P', Buffer.from([0, 0, 0, 0]))];
        }
        case 'B': {
          const [portal, afterPortal] = splitName(body);
          const [name, afterName] = splitName(afterPortal);
          const statement = client.get(name);
          if (name === '' || statement === undefined) return [message];
          const serverName = getServerName(statement);
          const bindMessage = encodeMessage('B', Buffer.from(`${portal}\0${serverName}\0`), afterName);
          return server.preparedNames.has(serverName)
            ? [bindMessage]
            : [createParse(server, serverName, statement, false), bindMessage];
        }
        case 'Q':
        case 'S':
          server.expectedAnswers.push({ kind: 'sync' });
          return [message];
        default:
          return [message];
      }
    },
    isDelivered(server, type) {
      if (type === '1') {
        const nextAnswer = server.expectedAnswers.shift();
        return nextAnswer?.kind !== 'parse' || nextAnswer.isDelivered;
      }
      // After an error, the server ignores all messages before the next Sync.
      for (let nextAnswer = type === 'Z' ? server.expectedAnswers.shift() : undefined; nextAnswer?.kind === 'parse'; ) {
        if (nextAnswer.name !== null) server.preparedNames.delete(nextAnswer.name);
        nextAnswer = server.expectedAnswers.shift();
      }
      return true;
    },
  };
}

function splitName(body: Buffer): readonly [name: string, afterName: Buffer] {
  const end = body.indexOf(0);
  return [body.toString('utf8', 0, end), body.subarray(end + 1)];
}

function encodeMessage(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}
