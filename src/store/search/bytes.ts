/** Numbers and texts written one behind another into bytes, and read again. */

/** Grows as needed. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** A whole number from 0 to 2^53, seven bits to a byte. */
  number(value: number): void {
    let rest = value;
    this.#reserve(8);
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** As UTF-8, its length before it. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.number(size);
    this.#reserve(size);
    this.#length += this.#bytes.write(value, this.#length);
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** A copy of what has been written, and begins anew. */
  take(): Uint8Array {
    const taken = new Uint8Array(this.#length);
    taken.set(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return taken;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.#bytes[this.#at++] ?? 0;
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
      scale *= 128;
    }
  }

  text(): string {
    const size = this.number();
    const begin = this.#at;
    this.#at += size;
    return this.#bytes.toString('utf8', begin, begin + size);
  }

  bytes(size: number): Uint8Array {
    const begin = this.#at;
    this.#at += size;
    return this.#bytes.subarray(begin, begin + size);
  }
}
