/** A value or a command with a button that copies it. */
import { ActionIcon, CopyButton } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';

interface CopyableProps {
  readonly value: string;
  /** Completes the label of the button, such as `the command`. */
  readonly label: string;
  /** True for a value of several lines. */
  readonly block?: boolean;
}

export function Copyable({ value, label, block = false }: CopyableProps) {
  return (
    <div className="command">
      {block ? <pre>{value}</pre> : <code>{value}</code>}
      <CopyIcon value={value} label={label} />
    </div>
  );
}

/** Only the copy button, for a value that the page shows beside the button. */
export function CopyIcon({ value, label }: Omit<CopyableProps, 'block'>) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <ActionIcon variant="subtle" color="gray" size={24} onClick={copy} aria-label={`Copy ${label}`}>
          {copied ? <IconCheck size={15} stroke={2} aria-hidden /> : <IconCopy size={15} stroke={1.6} aria-hidden />}
        </ActionIcon>
      )}
    </CopyButton>
  );
}
