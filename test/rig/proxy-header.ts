export function createProxyHeaderV2(
  client: string | Buffer,
  family = 0x11,
  extensions: Buffer = Buffer.alloc(0),
  versionAndCommand = 0x21,
): Buffer {
  const addresses =
    typeof client === 'string'
      ? Buffer.from([...client.split('.').map(Number), 192, 0, 2, 1, 0x12, 0x67, 0x00, 0x19])
      : client;
  const content = Buffer.concat([addresses, extensions]);
  const header = Buffer.from('0d0a0d0a000d0a515549540a00000000', 'hex');
  header[12] = versionAndCommand;
  header[13] = family;
  header.writeUInt16BE(content.length, 14);
  return Buffer.concat([header, content]);
}
