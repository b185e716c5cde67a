/**
 * Keeps up to `size` connections: hands out an idle one or the right to open one, and takes them back.
 *
 * Promises: never more than `size` at once (closing ones included); the connection used last is reused first, so
 * that spare ones grow idle and end; whoever waits is served in order. Knows nothing of messages.
 */
import type { Clock } from '../../clock.ts';
import { Transcript } from './channel.ts';
import type { Connection } from './connection.ts';
import type { SmtpLimits } from './limits.ts';

/** A connection, the right to open one (to be answered with `opened` or `freed`), or none: the pool is closed. */
export type Acquired = Connection | 'open' | 'closed';

export class Pool {
  readonly #size: number;
  readonly #limits: SmtpLimits;
  readonly #clock: Clock;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  readonly #waiting: ((acquired: Acquired) => void)[] = [];
  #count = 0;
  #closed = false;
  #whenEmpty: (() => void) | null = null;

  constructor(size: number, limits: SmtpLimits, clock: Clock) {
    this.#size = size;
    this.#limits = limits;
    this.#clock = clock;
  }

  /** With `fresh`, never an idle connection: one that lay unused ends in its place if need be. */
  acquire(fresh: boolean): Acquired | Promise<Acquired> {
    if (this.#closed) return 'closed';
    if (!fresh) {
      const connection = this.#idle.pop();
      if (connection !== undefined) {
        this.#busy.add(connection);
        return connection;
      }
    } else if (this.#count >= this.#size) {
      const oldest = this.#idle[0];
      // Its end is noticed by `idle` below, which frees the place at once.
      if (oldest !== undefined) oldest.channel.destroy();
    }
    if (this.#count < this.#size) {
      this.#count += 1;
      return 'open';
    }
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** The right to open was used: the connection is now the caller's. */
  opened(connection: Connection): void {
    this.#busy.add(connection);
  }

  /** The right to open came to nothing. */
  freed(): void {
    this.#count -= 1;
    if (this.#closed) {
      if (this.#count === 0) this.#whenEmpty?.();
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#count += 1;
      waiter('open');
    }
  }

  /** Takes a connection back, dead or alive. */
  release(connection: Connection): void {
    this.#busy.delete(connection);
    if (!connection.channel.alive) {
      this.freed();
      return;
    }
    if (this.#closed || connection.served >= this.#limits.messagesPerConnection) {
      void this.#quit(connection);
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) {
      this.#busy.add(connection);
      waiter(connection);
      return;
    }
    this.#idle.push(connection);
    connection.channel.idle(this.#limits.idleMs, (expired) => {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
      if (expired) void this.#quit(connection);
      else this.freed();
    });
  }

  /** Ends idle connections with QUIT now, busy ones when they come back, and all that are left after `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiting.splice(0)) waiter('closed');
    for (const connection of this.#idle.splice(0)) void this.#quit(connection);
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(timeoutMs, () => {
        for (const connection of this.#busy) connection.channel.destroy('the service is stopping');
        resolve();
      });
      this.#whenEmpty = () => {
        cancel();
        resolve();
      };
    });
  }

  async #quit(connection: Connection): Promise<void> {
    const { channel } = connection;
    this.#busy.add(connection);
    channel.begin(new Transcript(), Number.POSITIVE_INFINITY);
    channel.command('QUIT');
    await channel.next('the answer to QUIT', this.#limits.quitMs);
    channel.destroy();
    this.#busy.delete(connection);
    this.freed();
  }
}
