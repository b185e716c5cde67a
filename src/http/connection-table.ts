/**
 * The connections of one listener, and which of them goes when there are too many. A connection is keyless until it has
 * presented a valid key or session.
 *
 * Guarantees: at most `maxConnections` at once; the keyless ones go first, the oldest before the others, wherever they come
 * from; one that has presented a key is never closed to make room; every operation takes constant time. Once more than
 * half of the places are taken, a peer (an IPv4 address, or an IPv6 network of 64 bits) keeps at most its share of keyless
 * connections.
 */
import type { DropReason } from '../model/events.ts';

/** A connection, as the table sees it. */
export interface Member {
  /** Closes the connection; must not throw. */
  close(reason: DropReason): void;
  /** Written by the table alone. */
  seat: Seat | null;
}

/** A place in the table. */
interface Seat {
  readonly member: Member;
  readonly peer: Peer | null;
  readonly amongAll: Link;
  readonly amongPeer: Link | null;
  keyless: boolean;
}

/** The keyless connections of one peer. */
interface Peer {
  readonly name: string;
  readonly keyless: Line;
}

/** What one peer may hold of a listener that is more than half full, as a part of all places. */
const PEER_SHARE = 1 / 20;

export class ConnectionTable {
  readonly #maxConnections: number;
  readonly #maxOfPeer: number;
  readonly #keyless = new Line();
  readonly #peers = new Map<string, Peer>();
  #open = 0;

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
    this.#maxOfPeer = Math.max(1, Math.floor(maxConnections * PEER_SHARE));
  }

  /** How many connections are open. */
  get open(): number {
    return this.#open;
  }

  /**
   * Takes a new connection in, and closes the oldest keyless one where the listener is full. Where there is none to close,
   * the new one is closed, and this is false. `peerName` is null for peers without a share of their own.
   */
  enter(member: Member, peerName: string | null): boolean {
    if (this.#open >= this.#maxConnections) {
      const oldest = this.#keyless.first();
      if (oldest === null) {
        member.close('full');
        return false;
      }
      this.#close(oldest, 'full');
    }
    this.#open += 1;
    const peer = peerName === null ? null : this.#peerOf(peerName);
    const [amongAll, amongPeer] = [new Link(member), peer === null ? null : new Link(member)];
    this.#keyless.append(amongAll);
    if (peer !== null && amongPeer !== null) peer.keyless.append(amongPeer);
    member.seat = { member, peer, amongAll, amongPeer, keyless: true };
    if (peer !== null) this.#trim(peer);
    return true;
  }

  /** The connection has presented a valid key or session. */
  identify({ seat }: Member): void {
    if (seat?.keyless === true) this.#unlink(seat);
  }

  /** The connection is closed. */
  leave(member: Member): void {
    const { seat } = member;
    if (seat === null) return;
    member.seat = null;
    this.#open -= 1;
    if (seat.keyless) this.#unlink(seat);
  }

  #close(member: Member, reason: DropReason): void {
    this.leave(member);
    member.close(reason);
  }

  /** Two for each that comes: a peer that was over its share when the listener became half full gets down to it. */
  #trim({ keyless }: Peer): void {
    for (let closed = 0; closed < 2; closed += 1) {
      const oldest = keyless.first();
      if (oldest === null || keyless.length <= this.#maxOfPeer || this.#open * 2 <= this.#maxConnections) return;
      this.#close(oldest, 'address-share');
    }
  }

  #unlink(seat: Seat): void {
    seat.keyless = false;
    this.#keyless.remove(seat.amongAll);
    if (seat.peer === null || seat.amongPeer === null) return;
    seat.peer.keyless.remove(seat.amongPeer);
    if (seat.peer.keyless.length === 0) this.#peers.delete(seat.peer.name);
  }

  #peerOf(name: string): Peer {
    let peer = this.#peers.get(name);
    if (peer === undefined) {
      peer = { name, keyless: new Line() };
      this.#peers.set(name, peer);
    }
    return peer;
  }
}

class Link {
  readonly member: Member;
  before: Link | null = null;
  after: Link | null = null;

  constructor(member: Member) {
    this.member = member;
  }
}

/** A doubly linked list: a Set that is emptied from its front walks over every hole that it has left there. */
class Line {
  #first: Link | null = null;
  #last: Link | null = null;
  length = 0;

  first(): Member | null {
    return this.#first === null ? null : this.#first.member;
  }

  append(link: Link): void {
    link.before = this.#last;
    if (this.#last === null) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.length += 1;
  }

  /** Removes a link that is in this line. */
  remove(link: Link): void {
    if (link.before === null) this.#first = link.after;
    else link.before.after = link.after;
    if (link.after === null) this.#last = link.before;
    else link.after.before = link.before;
    link.before = null;
    link.after = null;
    this.length -= 1;
  }
}
