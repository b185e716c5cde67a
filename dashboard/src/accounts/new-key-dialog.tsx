/** A new key, shown this once: the dialog closes only by saying that it is kept somewhere. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { MadeKey, RotatedKey } from '../../../src/operations/keys/schemas.ts';
import { Copyable } from '../parts/copy';
import { exact } from '../parts/when';

export function NewKeyDialog({
  made,
  onStored,
}: {
  readonly made: MadeKey | RotatedKey;
  readonly onStored: () => void;
}) {
  return (
    <Modal
      opened
      onClose={onStored}
      title={`The new key ${made.id}`}
      centered
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
    >
      <Stack>
        <Text>Copy it to where the client reads it. It is shown only now; only a digest of it is kept here.</Text>
        <Copyable value={made.key} label="the key" block />
        {'until' in made ? <Text>The key that it replaces works until {exact(made.until)} at the latest.</Text> : null}
        <Group justify="flex-end">
          <Button onClick={onStored}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
