/**
 * Asks for confirmation before an action that cannot be undone. Only the button that names the action starts the
 * action.
 */
import { Text } from '@mantine/core';
import { FormDialog, type FormDialogProps } from './form-dialog';

export interface ConfirmDialogProps extends Omit<FormDialogProps, 'onSubmit' | 'color'> {
  readonly onConfirm: () => void;
}

export function ConfirmDialog({ children, onConfirm, ...dialog }: ConfirmDialogProps) {
  return (
    <FormDialog {...dialog} color="red" onSubmit={onConfirm}>
      <Text component="div">{children}</Text>
    </FormDialog>
  );
}
