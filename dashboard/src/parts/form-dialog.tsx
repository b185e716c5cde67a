/** A dialog with a form. Its button names the action; an error is shown above the button. */
import { Button, Group, Modal, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { ErrorAlert } from './page-states';

export interface FormDialogProps {
  readonly opened: boolean;
  readonly title: string;
  readonly children: ReactNode;
  /** The verb on the button, such as `Add domain`. */
  readonly action: string;
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly error?: unknown;
  /** The label of the button that closes the dialog without a change; `Cancel` by default. */
  readonly dismissal?: string;
  /** The colour of the button that starts the action. */
  readonly color?: string;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
}

export function FormDialog(props: FormDialogProps) {
  const { opened, title, children, action, busy = false, disabled = false, error, onSubmit, onClose } = props;
  return (
    <Modal opened={opened} onClose={onClose} title={title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <Stack>
          {children}
          {error === null || error === undefined ? null : <ErrorAlert error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {props.dismissal ?? 'Cancel'}
            </Button>
            <Button
              type="submit"
              {...(props.color === undefined ? {} : { color: props.color })}
              loading={busy}
              disabled={disabled}
            >
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
