/**
 * A dialog with a form. The button of the form names the action. An error is shown above the button. An error that a
 * field causes is shown at the field, and the field receives the focus.
 */
import { Button, Group, Modal, Stack } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';
import { ErrorAlert } from './page-states';

export interface FormDialogProps {
  readonly opened: boolean;
  readonly title: string;
  readonly children: ReactNode;
  /** The text of the button that starts the action, such as `Add domain`. */
  readonly action: string;
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly error?: unknown;
  /** True if the dialog shows the error at a field. */
  readonly hasFieldError?: boolean;
  /** The label of the button that closes the dialog without a change; `Cancel` by default. */
  readonly dismissal?: string;
  /** The color of the button that starts the action. */
  readonly color?: string;
  /** The width of the dialog; `md` by default. */
  readonly size?: 'md' | 'lg' | 'xl';
  readonly onSubmit: () => void;
  readonly onClose: () => void;
}

export function FormDialog(props: FormDialogProps) {
  const { opened, title, children, action, busy = false, disabled = false, error, onSubmit, onClose } = props;
  const { hasFieldError = false } = props;
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (hasFieldError && !busy) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [hasFieldError, busy]);
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      size={props.size ?? 'md'}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <Stack>
          {children}
          {hasFieldError || error === null || error === undefined ? null : <ErrorAlert error={error} />}
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
