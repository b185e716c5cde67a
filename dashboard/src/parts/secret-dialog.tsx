/**
 * Shows a new secret, which cannot be shown again. The dialog closes only with the button that confirms that the secret
 * is stored.
 */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Copyable } from './copyable';

interface SecretDialogProps {
  readonly title: string;
  readonly secret: string;
  /** The noun of the secret with its article, such as `the key`. */
  readonly label: string;
  /** States where to copy the secret. */
  readonly text: string;
  readonly children?: ReactNode;
  readonly onStored: () => void;
}

export function SecretDialog({ title, secret, label, text, children, onStored }: SecretDialogProps) {
  return (
    <Modal
      opened
      onClose={onStored}
      title={title}
      centered
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
    >
      <Stack>
        <Text>{text}</Text>
        <Copyable value={secret} label={label} block />
        {children}
        <Group justify="flex-end">
          <Button onClick={onStored}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
