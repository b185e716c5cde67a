/** Shows a new key once. */
import { Text } from '@mantine/core';
import type { CreatedKey, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { SecretDialog } from '../parts/secret-dialog';
import { formatTime } from '../parts/time';

interface NewKeyDialogProps {
  readonly made: CreatedKey | RotatedKey;
  readonly onStored: () => void;
}

export function NewKeyDialog({ made, onStored }: NewKeyDialogProps) {
  return (
    <SecretDialog
      title={`New key ${made.id}`}
      secret={made.key}
      label="the key"
      text="Copy the key to the configuration of the client. It is shown only once; the service stores only a digest."
      onStored={onStored}
    >
      {'until' in made ? <Text>The old key works until {formatTime(made.until)} at the latest.</Text> : null}
    </SecretDialog>
  );
}
