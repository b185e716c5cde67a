/** A mail request's own four fields and identity: what composition needs, nothing else. */
export interface Mail {
  /** Lower-case UUIDv7; also the left side of the Message-ID. */
  readonly id: string;
  /** Addresses as submitted (bare addr-spec, valid by `parseAddress`). */
  readonly to: string;
  readonly from: string;
  readonly subject: string;
  readonly message: string;
  /** Milliseconds since the epoch; becomes the Date header, the same on every attempt. */
  readonly acceptedAt: number;
}
