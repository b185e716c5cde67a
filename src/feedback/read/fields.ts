/**
 * Header fields as strangers write them: of a message, of a MIME part, of the groups in a delivery report. Promises one pass
 * over the text, at most MOST_FIELDS fields of bounded length, and never throws: a line that is no field is passed over.
 */

/** More than a message needs after the longest chain of relays. */
const MOST_FIELDS = 1_000;
const LONGEST_VALUE = 16_384;
/** RFC 5322 section 2.2 sets no limit; the longest registered name has fewer than 40 characters. */
const LONGEST_NAME = 80;

export interface Field {
  /** Lower case. */
  readonly name: string;
  /** Unfolded (RFC 5322 section 2.2.3), trimmed. */
  readonly value: string;
}

/** Reads the fields of `text`, whose lines end in LF or CRLF, up to the first blank line or the end. */
export function readFields(text: string): readonly Field[] {
  return readGroups(text, true)[0] ?? [];
}

/** Groups of fields with blank lines between them (RFC 3464 section 2.1), empty ones left out. */
export function readFieldGroups(text: string): readonly (readonly Field[])[] {
  return readGroups(text, false);
}

/** The value of the first field of that name (lower case) that says anything, or null. */
export function fieldValue(fields: readonly Field[], name: string): string | null {
  for (const field of fields) if (field.name === name && field.value !== '') return field.value;
  return null;
}

function readGroups(text: string, firstOnly: boolean): readonly (readonly Field[])[] {
  const groups: Field[][] = [];
  let group: Field[] = [];
  let count = 0;
  let name = '';
  let pieces: string[] = [];
  let length = 0;
  const endField = (): void => {
    if (name !== '') group.push({ name, value: pieces.join(' ').trim() });
    name = '';
  };
  const endGroup = (): void => {
    endField();
    if (group.length > 0) groups.push(group);
    group = [];
  };
  let from = 0;
  while (from < text.length && count < MOST_FIELDS) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end < 0 ? text.length : end);
    from = end < 0 ? text.length : end + 1;
    if (isBlank(line)) {
      endGroup();
      if (firstOnly && groups.length > 0) break;
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (length < LONGEST_VALUE) pieces.push(line.slice(0, LONGEST_VALUE - length).trim());
      length += line.length;
    } else {
      endField();
      const colon = colonOf(line);
      if (colon < 0) continue;
      count += 1;
      name = line.slice(0, colon).trimEnd().toLowerCase();
      pieces = [line.slice(colon + 1, colon + 1 + LONGEST_VALUE).trim()];
      length = line.length;
    }
  }
  endGroup();
  return groups;
}

/** Where the field's name ends, or -1 where the line is no field: names are printable and hold no space. */
function colonOf(line: string): number {
  for (let i = 0; i < line.length && i <= LONGEST_NAME; i += 1) {
    const c = line.charCodeAt(i);
    if (c === 0x3a) return i === 0 ? -1 : i;
    // White space before the colon is obsolete (RFC 5322 section 4.5.8), and some still write it.
    if (c === 0x20 || c === 0x09)
      return line
        .slice(i, i + LONGEST_NAME)
        .trimStart()
        .startsWith(':')
        ? line.indexOf(':', i)
        : -1;
    if (c < 0x21 || c > 0x7e) return -1;
  }
  return -1;
}

function isBlank(line: string): boolean {
  for (let i = 0; i < line.length; i += 1) {
    const c = line.charCodeAt(i);
    if (c !== 0x20 && c !== 0x09 && c !== 0x0d) return false;
  }
  return true;
}
