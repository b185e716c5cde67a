/** Shows a new signing secret once. The dialog closes only with the button that confirms that the secret is stored. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { WebhookSecret } from '../../../src/operations/webhooks/schemas.ts';
import { Copyable } from '../parts/copyable';

interface SecretDialogProps {
  readonly made: WebhookSecret;
  /** A sentence about the previous secret; null for a new endpoint. */
  readonly previous: string | null;
  readonly onStored: () => void;
}

export function SecretDialog({ made, previous, onStored }: SecretDialogProps) {
  return (
    <Modal
      opened
      onClose={onStored}
      title={`Signing secret of ${made.id}`}
      centered
      size="lg"
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
    >
      <Stack>
        <Text>
          Copy the secret to the configuration of the receiver, which verifies the signature of each request with it. It
          is shown only once.
        </Text>
        <Copyable value={made.secret} label="the secret" block />
        {previous === null ? null : <Text>{previous}</Text>}
        <Group justify="flex-end">
          <Button onClick={onStored}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
