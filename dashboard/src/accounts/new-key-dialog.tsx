/** Shows a new key once. The dialog closes only with the button that confirms that the key is stored. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { CreatedKey, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { Copyable } from '../parts/copyable';
import { formatUtc } from '../parts/time';

export function NewKeyDialog({
  made,
  onStored,
}: {
  readonly made: CreatedKey | RotatedKey;
  readonly onStored: () => void;
}) {
  return (
    <Modal
      opened
      onClose={onStored}
      title={`New key ${made.id}`}
      centered
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
    >
      <Stack>
        <Text>
          Copy the key to the configuration of the client. It is shown only once; the service stores only a digest.
        </Text>
        <Copyable value={made.key} label="the key" block />
        {'until' in made ? <Text>The old key works until {formatUtc(made.until)} at the latest.</Text> : null}
        <Group justify="flex-end">
          <Button onClick={onStored}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
