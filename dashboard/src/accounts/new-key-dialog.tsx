/** Shows a new key, which cannot be shown again. */
import { Text } from '@mantine/core';
import type { CreatedKey, RotatedKey } from '../../../src/operations/keys.ts';
import { SecretDialog } from '../parts/secret-dialog';
import { formatTime } from '../parts/time';

interface NewKeyDialogProps {
  readonly newKey: CreatedKey | RotatedKey;
  readonly onStored: () => void;
}

export function NewKeyDialog({ newKey, onStored }: NewKeyDialogProps) {
  return (
    <SecretDialog
      title={`New key ${newKey.id}`}
      secret={newKey.key}
      label="the key"
      text="Copy the key to the configuration of the client. It is shown only once; the service stores only a digest."
      onStored={onStored}
    >
      {'until' in newKey ? <Text>The old key works until {formatTime(newKey.until)} at the latest.</Text> : null}
    </SecretDialog>
  );
}
