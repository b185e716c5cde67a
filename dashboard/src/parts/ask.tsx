/** Asks before something that cannot be undone is done; nothing happens but on the button that names it. */
import { Text } from '@mantine/core';
import { FormDialog, type FormDialogProps } from './form-dialog';

export interface AskProps extends Omit<FormDialogProps, 'onSubmit' | 'dismissal' | 'color'> {
  readonly onConfirm: () => void;
}

export function Ask({ children, onConfirm, ...dialog }: AskProps) {
  return (
    <FormDialog {...dialog} dismissal="Keep as it is" color="#a3271c" onSubmit={onConfirm}>
      <Text component="div">{children}</Text>
    </FormDialog>
  );
}
