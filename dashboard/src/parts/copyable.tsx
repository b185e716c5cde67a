/** A value with a button that copies it. */
import { Button, Code, CopyButton, Group } from '@mantine/core';

export function Copyable({
  value,
  label,
  block = false,
}: {
  readonly value: string;
  readonly label: string;
  readonly block?: boolean;
}) {
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <Code block={block} className="wrap" style={{ flex: 1, whiteSpace: 'pre-wrap' }}>
        {value}
      </Code>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button size="compact-sm" variant="default" onClick={copy} aria-label={`Copy ${label}`}>
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
