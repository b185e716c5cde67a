/**
 * Parses untrusted header fields of a message, a MIME part or the groups of a delivery status notification. The parser
 * makes one pass over the text, returns at most MAX_FIELDS fields of bounded length, skips lines that are not fields,
 * and never throws.
 */

/** Maximum number of fields. Even a message that passed through many relays has fewer fields. */
const MAX_FIELDS = 1_000;
const MAX_VALUE_LENGTH = 16_384;
/**
 * Maximum length of a field name. RFC 5322 section 2.2 defines no maximum. The longest registered name has fewer than
 * 40 characters.
 */
const MAX_NAME_LENGTH = 80;

export interface Field {
  /** The name in lower case. */
  readonly name: string;
  /**
   * The value without surrounding white space. Each fold (RFC 5322 section 2.2.3) becomes one space. Text beyond about
   * `MAX_VALUE_LENGTH` characters is discarded.
   */
  readonly value: string;
}

/** Parses the fields of `text` up to the first blank line or the end. Lines end with LF or CRLF. */
export function readFields(text: string): readonly Field[] {
  return readGroups(text, true)[0] ?? [];
}

/** Parses groups of fields that are separated by blank lines (RFC 3464 section 2.1). Empty groups are omitted. */
export function readFieldGroups(text: string): readonly (readonly Field[])[] {
  return readGroups(text, false);
}

/** Returns the first non-empty value of the field with this lower-case name, or null. */
export function findFieldValue(fields: readonly Field[], name: string): string | null {
  for (const field of fields) if (field.name === name && field.value !== '') return field.value;
  return null;
}

function readGroups(text: string, stopsAfterFirstGroup: boolean): readonly (readonly Field[])[] {
  const groups: Field[][] = [];
  let group: Field[] = [];
  let fieldCount = 0;
  let name = '';
  let valueParts: string[] = [];
  let valueLength = 0;
  const endField = (): void => {
    if (name !== '') group.push({ name, value: valueParts.join(' ').trim() });
    name = '';
  };
  const endGroup = (): void => {
    endField();
    if (group.length > 0) groups.push(group);
    group = [];
  };
  let lineStart = 0;
  while (lineStart < text.length && fieldCount < MAX_FIELDS) {
    const lineEnd = text.indexOf('\n', lineStart);
    const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd);
    lineStart = lineEnd < 0 ? text.length : lineEnd + 1;
    if (isBlank(line)) {
      endGroup();
      if (stopsAfterFirstGroup && groups.length > 0) break;
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (valueLength < MAX_VALUE_LENGTH) valueParts.push(line.slice(0, MAX_VALUE_LENGTH - valueLength).trim());
      valueLength += line.length;
    } else {
      endField();
      const colonIndex = findColon(line);
      if (colonIndex < 0) continue;
      fieldCount += 1;
      name = line.slice(0, colonIndex).trimEnd().toLowerCase();
      valueParts = [line.slice(colonIndex + 1, colonIndex + 1 + MAX_VALUE_LENGTH).trim()];
      valueLength = line.length;
    }
  }
  endGroup();
  return groups;
}

/**
 * Returns the index of the colon, or -1 when the line is not a field. Field names are printable ASCII without spaces.
 */
function findColon(line: string): number {
  for (let i = 0; i < line.length && i <= MAX_NAME_LENGTH; i += 1) {
    const charCode = line.charCodeAt(i);
    if (charCode === 0x3a) return i === 0 ? -1 : i;
    // White space before the colon is obsolete (RFC 5322 section 4.5.8), but some servers still write it.
    if (charCode === 0x20 || charCode === 0x09)
      return line
        .slice(i, i + MAX_NAME_LENGTH)
        .trimStart()
        .startsWith(':')
        ? line.indexOf(':', i)
        : -1;
    if (charCode < 0x21 || charCode > 0x7e) return -1;
  }
  return -1;
}

function isBlank(line: string): boolean {
  for (let i = 0; i < line.length; i += 1) {
    const charCode = line.charCodeAt(i);
    if (charCode !== 0x20 && charCode !== 0x09 && charCode !== 0x0d) return false;
  }
  return true;
}
