/**
 * Reads the fields of a form (application/x-www-form-urlencoded or multipart/form-data, RFC 7578). The functions are
 * pure and never throw.
 */

import { parseForm } from '../form.ts';

/** The fields of a form in the order of the body. Several fields can have the same name. */
export type FormFields = readonly (readonly [name: string, value: string])[];

const MULTIPART_TYPE = 'multipart/form-data';
const URL_ENCODED_TYPE = 'application/x-www-form-urlencoded';

const MAX_BOUNDARY_LENGTH = 70;
const MAX_PARTS = 1_000;
const [LINE_END, HEADER_END] = ['\r\n', '\r\n\r\n'];
const MAX_HEADER_BYTES = 4_096;

/** Returns true if the content type is the type of a form. */
export function isForm(contentType: string): boolean {
  const type = contentType.toLowerCase();
  return type.startsWith(URL_ENCODED_TYPE) || type.startsWith(MULTIPART_TYPE);
}

/**
 * Reads the fields of a form. Files and malformed parts are skipped. The result is empty for a URL-encoded form with
 * more than 1,000 fields.
 */
export function readForm(contentType: string, body: Buffer): FormFields {
  if (!contentType.toLowerCase().startsWith(MULTIPART_TYPE))
    return (parseForm(body) ?? []).map(({ name, value }) => [name, value]);
  const boundary = findBoundary(contentType);
  return boundary === null ? [] : readParts(body, `--${boundary}`);
}

/** Returns the value of the last field with this name, or null. */
export function findLastField(fields: FormFields, name: string): string | null {
  return fields.findLast(([fieldName]) => fieldName === name)?.[1] ?? null;
}

function findBoundary(contentType: string): string | null {
  const labelIndex = contentType.toLowerCase().indexOf('boundary=');
  if (labelIndex < 0) return null;
  const value = contentType.slice(labelIndex + 'boundary='.length);
  const boundary = value.startsWith('"') ? value.slice(1).split('"', 1)[0] : value.split(';', 1)[0]?.trim();
  return boundary === undefined || boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH ? null : boundary;
}

function readParts(body: Buffer, delimiter: string): FormFields {
  const fields: [string, string][] = [];
  let delimiterIndex = body.indexOf(delimiter);
  for (let partCount = 0; delimiterIndex >= 0 && partCount < MAX_PARTS; partCount += 1) {
    const partStart = delimiterIndex + delimiter.length;
    const partEnd = body.indexOf(`${LINE_END}${delimiter}`, partStart);
    if (partEnd < 0) break;
    const part = body.subarray(partStart, partEnd);
    const headerEnd = part.subarray(0, MAX_HEADER_BYTES).indexOf(HEADER_END);
    const name = headerEnd < 0 ? null : findFieldName(part.toString('utf8', 0, headerEnd));
    if (name !== null) fields.push([name, part.toString('utf8', headerEnd + HEADER_END.length)]);
    delimiterIndex = partEnd + LINE_END.length;
  }
  return fields;
}

/** Returns the field name of a part. Returns null if the part is a file or has no name. */
function findFieldName(header: string): string | null {
  if (header.toLowerCase().includes('filename')) return null;
  const nameIndex = header.indexOf('name="');
  return nameIndex < 0 ? null : (header.slice(nameIndex + 'name="'.length).split('"', 1)[0] ?? null);
}
