"""Convolutional networks and vision transformers, in every precision and layout."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

from case import Job, case
from context import Context
from data import classified_images, images, labels


def classifier(name: str, batch: int, side: int = 224) -> Callable[[Context], Job]:
    """A torchvision model on images of 1000 classes."""

    def build(context: Context) -> Job:
        import torchvision

        small = {"image_size": 64} if context.tiny and name.startswith("vit") else {}
        model = torchvision.models.get_model(name, weights=None, **small)
        size = context.batch(batch)
        return Job(
            model,
            classified_images(context, size, context.pick(side, 64), 1000),
            lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]),
        )

    return build


resnet18 = classifier("resnet18", 64)
resnet50 = classifier("resnet50", 32)

case("resnet18", resnet18, optimizer="sgd", alone=True)
case("resnet18-odd-batch", classifier("resnet18", 37), optimizer="sgd-momentum")
case("resnet18-accumulate-4", resnet18, optimizer="sgd-momentum", accumulate=4)
case("resnet18-fp16-channels-last", resnet18, precision="fp16", channels_last=True)
case("resnet50", resnet50, optimizer="sgd-momentum", alone=True)
case("resnet50-channels-last", resnet50, optimizer="sgd-momentum", channels_last=True)
case("resnet50-fp16", resnet50, optimizer="sgd-momentum", precision="fp16")
case("resnet50-fp16-channels-last", resnet50, precision="fp16", channels_last=True, alone=True)
case("resnet50-bf16", resnet50, precision="bf16")
case("resnet50-bf16-channels-last", resnet50, precision="bf16", channels_last=True)
case("resnet50-pure-bf16", resnet50, precision="pure-bf16", optimizer="sgd-momentum")
case("resnext50", classifier("resnext50_32x4d", 16), optimizer="sgd-momentum")
case("vgg16", classifier("vgg16", 32), optimizer="sgd-momentum", alone=True)
case("vgg16-bf16", classifier("vgg16", 32), precision="bf16")
case("vgg11-bn", classifier("vgg11_bn", 32), optimizer="sgd")
case("densenet121", classifier("densenet121", 32), optimizer="sgd-momentum")
case("densenet121-fp16", classifier("densenet121", 32), precision="fp16")
case("mobilenet-v3", classifier("mobilenet_v3_large", 64), optimizer="rmsprop")
case(
    "mobilenet-v3-fp16-channels-last",
    classifier("mobilenet_v3_large", 64),
    precision="fp16",
    channels_last=True,
)
case("efficientnet-b0", classifier("efficientnet_b0", 32))
case(
    "efficientnet-b0-bf16-channels-last",
    classifier("efficientnet_b0", 32),
    precision="bf16",
    channels_last=True,
)
case("convnext-tiny", classifier("convnext_tiny", 32), alone=True)
case("convnext-tiny-bf16", classifier("convnext_tiny", 32), precision="bf16")
case("convnext-tiny-channels-last", classifier("convnext_tiny", 16), channels_last=True)
case("regnet-y-400mf", classifier("regnet_y_400mf", 64), optimizer="sgd-momentum")
case("shufflenet-v2", classifier("shufflenet_v2_x1_0", 64), optimizer="sgd")
case("squeezenet", classifier("squeezenet1_1", 64), optimizer="sgd")
case("mnasnet", classifier("mnasnet1_0", 32), optimizer="rmsprop")
case("alexnet", classifier("alexnet", 128), optimizer="sgd-momentum")
case("vit-b-16", classifier("vit_b_16", 32), alone=True)
case("vit-b-16-bf16", classifier("vit_b_16", 32), precision="bf16")
case("vit-b-16-fp16", classifier("vit_b_16", 32), precision="fp16")
case("vit-b-16-pure-bf16", classifier("vit_b_16", 32), precision="pure-bf16")
case("swin-t", classifier("swin_t", 32))
case("swin-t-bf16", classifier("swin_t", 32), precision="bf16")


class UNet(nn.Module):
    """A small U-Net: two convolutions per level, transposed convolutions on the way up."""

    def __init__(self, width: int, levels: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(
            _two_convolutions(before, after) for before, after in zip([3, *widths], widths)
        )
        self.widen = nn.ModuleList(
            nn.ConvTranspose2d(deep, shallow, 2, stride=2)
            for shallow, deep in zip(widths[:-1], widths[1:])
        )
        self.up = nn.ModuleList(_two_convolutions(2 * shallow, shallow) for shallow in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.up[level](torch.cat([kept[level], self.widen[level](x)], dim=1))
        return self.head(x)


def _two_convolutions(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


def unet(context: Context) -> Job:
    side, size = context.pick(256, 32), context.batch(8)

    def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return images(context, size, 3, side, side), torch.zeros(size, side, side, dtype=torch.long)

    return Job(
        UNet(context.pick(64, 4)),
        make,
        lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]),
    )


case("unet", unet, optimizer="adam")
case("unet-fp16", unet, optimizer="adam", precision="fp16")
case("unet-bf16-channels-last", unet, optimizer="adam", precision="bf16", channels_last=True)


def segmentation(name: str, batch: int) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        import torchvision

        model = torchvision.models.get_model(
            name, weights=None, weights_backbone=None, num_classes=21
        )
        side, size = context.pick(256, 64), context.batch(batch)

        def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
            return images(context, size, 3, side, side), torch.zeros(
                size, side, side, dtype=torch.long
            )

        return Job(model, make, lambda net, b: nn.functional.cross_entropy(net(b[0])["out"], b[1]))

    return build


case("fcn-resnet50", segmentation("fcn_resnet50", 8), optimizer="sgd-momentum")
case(
    "deeplab-v3-bf16",
    segmentation("deeplabv3_resnet50", 8),
    optimizer="sgd-momentum",
    precision="bf16",
)


def video(context: Context) -> Job:
    import torchvision

    model = torchvision.models.video.r3d_18(weights=None)
    size, frames, side = context.batch(8), context.pick(16, 4), context.pick(112, 32)

    def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        return images(context, size, 3, frames, side, side), labels(context, size, 400)

    return Job(model, make, lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]))


case("r3d-18", video, optimizer="sgd-momentum")
case("r3d-18-bf16", video, optimizer="sgd-momentum", precision="bf16")


def autoencoder(context: Context) -> Job:
    """Strided convolutions down, transposed convolutions up."""
    width, size, side = context.pick(64, 8), context.batch(64), context.pick(128, 32)
    down: list[nn.Module] = []
    channels = 3
    for level in range(4):
        down += [nn.Conv2d(channels, width * 2**level, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]
        channels = width * 2**level
    up: list[nn.Module] = []
    for level in reversed(range(4)):
        after = width * 2 ** (level - 1) if level else 3
        up += [nn.ConvTranspose2d(channels, after, 4, stride=2, padding=1), nn.ReLU()]
        channels = after
    return Job(
        nn.Sequential(*down, *up[:-1], nn.Tanh()),
        lambda step: images(context, size, 3, side, side),
        lambda net, x: nn.functional.mse_loss(net(x), x),
    )


case("autoencoder-transposed", autoencoder, optimizer="adam")
case("autoencoder-transposed-fp16", autoencoder, optimizer="adam", precision="fp16")


class CheckpointedResNet(nn.Module):
    """ResNet-50 whose stages are recomputed in the backward pass."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        import torchvision

        net = torchvision.models.resnet50(weights=None)
        self.stem = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool)
        self.stages = nn.Sequential(net.layer1, net.layer2, net.layer3, net.layer4)
        self.head = nn.Sequential(net.avgpool, nn.Flatten(), net.fc)
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = checkpoint_sequential(self.stages, 4, x, use_reentrant=self.reentrant)
        return self.head(x)


def checkpointed_resnet(reentrant: bool) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        size = context.batch(64)
        return Job(
            CheckpointedResNet(reentrant),
            classified_images(context, size, context.pick(224, 64), 1000),
            lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]),
        )

    return build


case("resnet50-checkpoint", checkpointed_resnet(False), optimizer="sgd-momentum")
case("resnet50-checkpoint-reentrant", checkpointed_resnet(True), optimizer="sgd-momentum")


def generator(noise: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(noise, width * 8, 4, bias=False)]
    for level in (8, 4, 2):
        layers += [nn.BatchNorm2d(width * level), nn.ReLU(True)]
        layers += [nn.ConvTranspose2d(width * level, width * level // 2, 4, 2, 1, bias=False)]
    return nn.Sequential(
        *layers,
        nn.BatchNorm2d(width),
        nn.ReLU(True),
        nn.ConvTranspose2d(width, 3, 4, 2, 1),
        nn.Tanh(),
    )


def discriminator(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for level in (1, 2, 4):
        layers += [nn.Conv2d(width * level, width * level * 2, 4, 2, 1, bias=False)]
        layers += [nn.BatchNorm2d(width * level * 2), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(width * 8, 1, 4), nn.Flatten())


def train_gan(context: Context) -> None:
    """DCGAN: two networks, two optimizers, one step of each."""
    width, size = context.pick(64, 8), context.batch(256)
    makes, judges = generator(100, width), discriminator(width)
    context.start()
    makes, judges = makes.to(context.device), judges.to(context.device)
    options: dict[str, Any] = {"lr": 2e-4, "betas": (0.5, 0.999)}
    generator_optimizer = torch.optim.Adam(makes.parameters(), **options)
    discriminator_optimizer = torch.optim.Adam(judges.parameters(), **options)
    loss = nn.functional.binary_cross_entropy_with_logits
    for _ in range(context.steps):
        real = images(context, size, 3, 64, 64).to(context.device)
        one, zero = (
            torch.ones(size, 1, device=context.device),
            torch.zeros(size, 1, device=context.device),
        )
        with context.autocast():
            fake = makes(torch.randn(size, 100, 1, 1, device=context.device))
            judged = loss(judges(real), one) + loss(judges(fake.detach()), zero)
        discriminator_optimizer.zero_grad()
        judged.backward()
        discriminator_optimizer.step()
        with context.autocast():
            fooled = loss(judges(fake), one)
        generator_optimizer.zero_grad()
        fooled.backward()
        generator_optimizer.step()
        context.step_done()


case("dcgan", script=train_gan)
case("dcgan-bf16", script=train_gan, precision="bf16")
