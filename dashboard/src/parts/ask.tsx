/** Asks before something that cannot be undone is done; nothing happens but on the button that names it. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Failure } from './states';

export interface AskProps {
  readonly opened: boolean;
  readonly title: string;
  readonly children: ReactNode;
  /** The verb on the button, such as `Lock account`. */
  readonly action: string;
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly error?: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function Ask({ opened, title, children, action, busy, disabled, error, onConfirm, onClose }: AskProps) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <Stack>
          <Text component="div">{children}</Text>
          {error === undefined || error === null ? null : <Failure error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Keep as it is
            </Button>
            <Button type="submit" color="#a3271c" loading={busy ?? false} disabled={disabled ?? false}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
